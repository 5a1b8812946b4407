"""CTranslate2's directories, and packages around one."""
