"""What is known of one program: the record that every observer fills and every rule reads."""
