"""Objects in a bucket: the port, S3 and a folder, keys of objects, and credentials of a limited time."""
