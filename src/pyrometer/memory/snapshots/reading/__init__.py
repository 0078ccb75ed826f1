"""From a pickle file to columns, without ever running what the file says."""
