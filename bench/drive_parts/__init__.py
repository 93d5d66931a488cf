"""What bench/drive.py is put together from."""
