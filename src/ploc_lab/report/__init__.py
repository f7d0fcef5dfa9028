"""Tables, figures and the page, with the paper's printed numbers beside ours."""
