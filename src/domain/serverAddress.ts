/**
 * The address of a server: what calls are made below it. Its query belongs to every call.
 */

/** An address whose path is changed; its query stays. */
export const onPath = (address: string, change: (path: string) => string): string => {
  const question = address.indexOf("?")
  return question === -1 ? change(address) : change(address.slice(0, question)) + address.slice(question)
}

/** Where the calls of a server go. */
export interface ServerAddress {
  /** Scheme, host and port. */
  readonly origin: string
  /** The path of the address, without a trailing slash. */
  readonly base: string
  /** The query of the address with its question mark; empty without one. */
  readonly query: string
  /**
   * The path with the query of a call, from its path below the address. The query of the address follows that of the call, without the
   * parameters that the call has itself.
   */
  readonly pathOf: (path: string) => string
}

const namesIn = (query: string): ReadonlyArray<string> => [...new URLSearchParams(query).keys()]

/** Reads the address of a server, which is a valid URL. */
export const serverAddress = (address: string): ServerAddress => {
  const { origin, pathname, search } = new URL(address)
  const base = pathname.replace(/\/+$/, "")
  const parts = search.slice(1).split("&").filter((part) => part !== "")
    .map((text) => ({ text, name: namesIn(text)[0] ?? "" }))
  const pathOf = (path: string): string => {
    if (parts.length === 0) return base + path
    const question = path.indexOf("?")
    const own = new Set(question === -1 ? [] : namesIn(path.slice(question)))
    const added = parts.filter(({ name }) => !own.has(name)).map(({ text }) => text).join("&")
    return added === "" ? base + path : `${base}${path}${question === -1 ? "?" : "&"}${added}`
  }
  return { origin, base, query: search, pathOf }
}
