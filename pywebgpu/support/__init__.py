"""What every layer may use and what knows no tensor: files, names, integers, shapes."""
