"""The console of inferdeck: starts the stack, looks requests up, drills failures and reports in one shape."""
