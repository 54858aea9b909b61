"""The application: commands, tables in and out, and the report."""
