"""What people look at: terminal, Markdown and HTML views of records. Views never compute."""
