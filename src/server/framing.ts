/** What keeps a page of another site, or of another path of the same site, from showing a reply in a frame of its own. */
export const framingHeaders = {
  "content-security-policy": "frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff"
} as const
