/**
 * Addresses of stores: `redis://[user:password@]host[:port][/db]`, `rediss://…` with TLS, and
 * `unix://[user:password@]/socket[?db=n]`.
 */

/** Where a store is and who asks. */
export interface StoreAddress {
  readonly socket:
    | { readonly path: string; readonly tls: false }
    | { readonly host: string; readonly port: number; readonly tls: boolean }
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** The address without its credentials: all of it that may be shown. */
  readonly shown: string
}

const databaseOf = (text: string): number | undefined =>
  text === "" ? 0 : /^\d{1,5}$/.test(text) ? Number(text) : undefined

const decoded = (text: string | undefined): string | undefined => {
  if (text === undefined || text === "") return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Reads an address; `undefined` where it has another form. */
export const parseStoreAddress = (text: string): StoreAddress | undefined => {
  const unix = /^unix:\/\/(?:([^:@/]*)(?::([^@]*))?@)?(\/[^?]+)(?:\?db=(\d+))?$/.exec(text)
  if (unix !== null) {
    const [, username, password, path = "", db = ""] = unix
    const database = databaseOf(db)
    if (database === undefined) return undefined
    return {
      socket: { path, tls: false },
      username: decoded(username),
      password: decoded(password),
      database,
      shown: `unix://${path}${database === 0 ? "" : `?db=${database}`}`
    }
  }
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const database = databaseOf(url.pathname.replace(/^\//, ""))
  if (url.hostname === "" || database === undefined) return undefined
  const port = url.port === "" ? 6379 : Number(url.port)
  return {
    socket: { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port, tls: url.protocol === "rediss:" },
    username: decoded(url.username),
    password: decoded(url.password),
    database,
    shown: `${url.protocol}//${url.hostname}:${port}${database === 0 ? "" : `/${database}`}`
  }
}
