export const ROBOTS_MIGRATION = `
  -- Where robots.txt is, of an origin whose own one redirects.
  ALTER TABLE robots ADD COLUMN redirect_to text;
`;
