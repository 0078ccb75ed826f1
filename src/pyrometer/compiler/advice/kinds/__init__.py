"""One file per family of breaks; each registers its advisers."""
