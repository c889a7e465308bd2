"""What is measured, beside a peer in the same run. Ratios are the result; nothing here runs in the tests."""
