/**
 * Blots credentials out of what is shown. Overwritten in place, so that all other bytes stay where they are.
 */

/** Shorter secrets are no credentials but words, such as the `none` of a server that asks for no key. */
export const shortestSecret = 8

/** The forms in which a secret may stand in a body: as it is, and as JSON text. */
const formsOf = (secrets: Iterable<string>): ReadonlySet<string> => {
  const forms = new Set<string>()
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue
    forms.add(secret)
    forms.add(JSON.stringify(secret).slice(1, -1))
  }
  return forms
}

/** Overwrites every occurrence of the secrets in `bytes`, and gives the same array. */
export const blotBytes = (bytes: Uint8Array, secrets: Iterable<string>): Uint8Array => {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (const secret of formsOf(secrets)) {
    const wanted = Buffer.from(secret)
    for (let at = view.indexOf(wanted); at !== -1; at = view.indexOf(wanted, at + wanted.length)) {
      view.fill("*", at, at + wanted.length)
    }
  }
  return bytes
}

/** The text without the secrets. */
export const blotText = (text: string, secrets: Iterable<string>): string => {
  let blotted = text
  for (const secret of formsOf(secrets)) blotted = blotted.replaceAll(secret, "*".repeat(secret.length))
  return blotted
}

/** An address without credentials and query. */
export const plainUrl = (url: string): string => {
  if (!URL.canParse(url)) return url
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}
