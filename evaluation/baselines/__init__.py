"""The same answers by other means, each in its best honest form."""
