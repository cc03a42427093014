/**
 * What Seine keeps in its folder is for its owner alone: pages behind a login, cookies, rows of a customer. A folder is
 * made with these modes whatever the umask is; one that is there already keeps its own.
 */
export const PRIVATE_FOLDER = 0o700;
export const PRIVATE_FILE = 0o600;
