/** The page is not what the route expects: an element or field is missing, or a record does not fit its schema. */
export class ValidationError extends Error {}
