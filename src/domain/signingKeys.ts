/**
 * Keys that sign each request, in place of a header with a key: those of AWS.
 *
 * They travel as a token, which no configured token can be: those have no line breaks.
 */

/** Keys of AWS. Those of a session have its token beside them. */
export interface SigningKeys {
  readonly id: string
  readonly secret: string
  readonly session: string | undefined
}

/** Keys in one line, as their source issues them. */
export const textOfKeys = ({ id, secret, session }: SigningKeys): string => [id, secret, session ?? ""].join(" ").trim()

/** The token of keys in one line. */
export const tokenOfKeys = (text: string): string => `\n\n${text}`

/** The keys that a token is; `undefined` for other tokens. */
export const keysOfToken = (token: string): SigningKeys | undefined => {
  if (!token.startsWith("\n\n")) return undefined
  const [id = "", secret = "", session] = token.slice(2).split(" ")
  return { id, secret, session }
}

/** What of keys must not be shown: each of them, and the line last. */
export const secretsOfKeys = (keys: SigningKeys): ReadonlyArray<string> => [
  keys.id,
  keys.secret,
  ...(keys.session === undefined ? [] : [keys.session]),
  textOfKeys(keys)
]
