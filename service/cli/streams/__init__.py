"""What commands read and write: lines, files, standard streams."""
