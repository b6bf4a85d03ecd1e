"""Where Python runs elsewhere: Node, pages and the server that sends them, Chromium for tests and benchmarks."""
