/**
 * `data:` addresses (RFC 2397) with Base64 content, as callers send images and files.
 */

/** Media type and Base64 text of a `data:` address; `undefined` for any other address. */
export const dataUrl = (url: string): { readonly mediaType: string; readonly data: string } | undefined => {
  if (!url.startsWith("data:")) return undefined
  const comma = url.indexOf(",")
  const head = url.slice(5, comma)
  if (comma === -1 || !head.endsWith(";base64")) return undefined
  const mediaType = head.slice(0, head.indexOf(";"))
  return { mediaType: mediaType === "" ? "application/octet-stream" : mediaType, data: url.slice(comma + 1) }
}
