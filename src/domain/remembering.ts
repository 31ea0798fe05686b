/**
 * Functions of short texts that clients send again and again, such as addresses, names of programs and of fields.
 */

/** Texts whose results are remembered, since a client sends many requests. At this number all are forgotten. */
const mostRemembered = 1_024

/** The function, which remembers its results. */
export const remembering = <A>(resultOf: (text: string) => A): (text: string) => A => {
  const results = new Map<string, A>()
  return (text) => {
    const known = results.get(text)
    if (known !== undefined) return known
    if (results.size >= mostRemembered) results.clear()
    const result = resultOf(text)
    results.set(text, result)
    return result
  }
}
