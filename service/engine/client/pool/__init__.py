"""Pool of the engines of one deployment, with the interface of one."""
