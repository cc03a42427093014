/** The bundler takes them. */
declare module '*.css';
