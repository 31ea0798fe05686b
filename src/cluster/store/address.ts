/**
 * The address of the store: one server, or the servers that name it.
 */

export interface Endpoint {
  readonly host: string
  readonly port: number
}

interface Access {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** The address without its credentials, for output. */
  readonly shown: string
}

/** One server. */
export interface ServerAddress extends Access {
  readonly socket:
    | { readonly path: string; readonly tls: false }
    | (Endpoint & { readonly tls: boolean })
}

/** A server that others name: sentinels, or the nodes of a cluster. */
export interface GuidedAddress extends Access {
  readonly guides: ReadonlyArray<Endpoint>
  readonly tls: boolean
  /** The name of the primary and the credentials for the sentinels; `undefined` for a cluster. */
  readonly sentinel:
    | { readonly name: string; readonly username: string | undefined; readonly password: string | undefined }
    | undefined
}

export type StoreAddress = ServerAddress | GuidedAddress

/** The most servers that an address may list. */
const mostGuides = 16

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

const endpointOf = (text: string, port: number): Endpoint | undefined => {
  const parts = /^(?:\[([\da-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text)
  const host = parts?.[1] ?? parts?.[2]
  const given = parts?.[3] === undefined ? port : Number(parts[3])
  return host === undefined || given < 1 || given > 65_535 ? undefined : { host, port: given }
}

const shownEndpoint = ({ host, port }: Endpoint): string => `${host.includes(":") ? `[${host}]` : host}:${port}`

/** `redis+sentinel://…`, `redis+cluster://…`: the address, or what is wrong with it. */
const readGuided = (text: string): GuidedAddress | string => {
  const parts = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^:@/?]*)(?::(.*))?@)?([^@/?]*)(?:\/([^?]*))?(?:\?(.*))?$/.exec(
    text
  )
  const form = text.slice(0, text.indexOf("://"))
  if (parts === null) return `must have the form ${form}://[user:password@]host:port,host:port…`
  const [, scheme, kind, username, password, hosts = "", path = "", query = ""] = parts
  const isSentinel = kind === "sentinel"
  const endpoints = hosts.split(",").map((host) => endpointOf(host.trim(), isSentinel ? 26_379 : 6_379))
  const guides = endpoints.filter((endpoint) => endpoint !== undefined)
  if (guides.length < endpoints.length) return `must list its servers as host:port, with commas between: ${form}://…`
  if (guides.length > mostGuides) return `may list ${mostGuides} servers at most`
  const [name = "", db = "", ...rest] = path.split("/")
  const database = isSentinel ? databaseOf(db) : 0
  const parameters = new URLSearchParams(query)
  const known = isSentinel ? ["sentinel_user", "sentinel_password"] : []
  const unknown = [...parameters.keys()].find((key) => !known.includes(key))
  if (unknown !== undefined) return `has an unknown parameter: ${form} takes ${known.join(" and ") || "none"}`
  if (isSentinel && name === "") return `must name the primary as the sentinels do: ${form}://host:port,host:port/NAME`
  if (database === undefined || rest.length > 0) return `must end with /NAME or /NAME/db: ${form}://host:port/NAME/0`
  if (!isSentinel && path !== "" && path !== "0") return `must have no path: a cluster has only database 0`
  const place = isSentinel ? `/${name}${database === 0 ? "" : `/${database}`}` : ""
  return {
    guides,
    tls: scheme === "rediss",
    sentinel: isSentinel
      ? {
        name: decoded(name) ?? name,
        username: parameters.get("sentinel_user") ?? undefined,
        password: parameters.get("sentinel_password") ?? undefined
      }
      : undefined,
    username: decoded(username),
    password: decoded(password),
    database,
    shown: `${form}://${guides.map(shownEndpoint).join(",")}${place}`
  }
}

const forms = "redis://[user:password@]host[:port][/db], rediss://…, unix://…/socket[?db=n], " +
  "redis+sentinel://host:port,…/NAME or redis+cluster://host:port,…"

const read = (text: string): StoreAddress | string => {
  if (/^rediss?\+(?:sentinel|cluster):\/\//.test(text)) return readGuided(text)
  const malformed = `must be ${forms}`
  const unix = /^unix:\/\/(?:([^:@/]*)(?::([^@]*))?@)?(\/[^?]+)(?:\?db=(\d+))?$/.exec(text)
  if (unix !== null) {
    const [, username, password, path = "", db = ""] = unix
    const database = databaseOf(db)
    if (database === undefined) return malformed
    return {
      socket: { path, tls: false },
      username: decoded(username),
      password: decoded(password),
      database,
      shown: `unix://${path}${database === 0 ? "" : `?db=${database}`}`
    }
  }
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return malformed
  const url = new URL(text)
  const database = databaseOf(url.pathname.replace(/^\//, ""))
  if (url.hostname === "" || database === undefined) return malformed
  const port = url.port === "" ? 6379 : Number(url.port)
  return {
    socket: { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port, tls: url.protocol === "rediss:" },
    username: decoded(url.username),
    password: decoded(url.password),
    database,
    shown: `${url.protocol}//${url.hostname}:${port}${database === 0 ? "" : `/${database}`}`
  }
}

/**
 * Parses the address of a store; `undefined` for another form:
 *
 * - `redis://[user:password@]host[:port][/db]`, `rediss://…` (TLS), `unix://[user:password@]/socket[?db=n]`;
 * - `redis+sentinel://[user:password@]host[:port],…/NAME[/db]`: the primary that the sentinels name, whose credentials are
 *   the parameters `sentinel_user` and `sentinel_password`;
 * - `redis+cluster://[user:password@]host[:port],…`: a cluster, of which any nodes are listed.
 */
export const parseStoreAddress = (text: string): StoreAddress | undefined => {
  const address = read(text)
  return typeof address === "string" ? undefined : address
}

/** What is wrong with an address that `parseStoreAddress` rejects. Contains nothing of it. */
export const storeAddressFault = (text: string): string => {
  const address = read(text)
  return typeof address === "string" ? address : ""
}
