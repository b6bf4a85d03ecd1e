"""Real browsers, by Playwright."""
