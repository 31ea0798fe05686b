/**
 * The route: the part of the address behind the hash.
 */
import * as Atom from "effect/reactivity/Atom"

export const pages = [
  "overview",
  "requests",
  "playground",
  "keys",
  "accounts",
  "upstreams",
  "routes",
  "settings",
  "usage",
  "samples",
  "transfer",
  "about"
] as const

export type Page = (typeof pages)[number]

interface Route {
  readonly page: Page
  /** The part behind the page's name: the id of a request. */
  readonly of: string | undefined
}

const isPage = (name: string | undefined): name is Page => pages.some((page) => page === name)

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const parse = (hash: string): Route => {
  const [name, ...rest] = hash.replace(/^#\/?/, "").split("/")
  return { page: isPage(name) ? name : "overview", of: rest.length === 0 ? undefined : decode(rest.join("/")) }
}

/** The address of a page. */
export const linkTo = (page: Page, of?: string): string =>
  `#/${page}${of === undefined ? "" : `/${encodeURIComponent(of)}`}`

export const routeAtom = Atom.keepAlive(Atom.make((get): Route => {
  const changed = () => get.setSelf(parse(location.hash))
  addEventListener("hashchange", changed)
  get.addFinalizer(() => removeEventListener("hashchange", changed))
  return parse(location.hash)
}))

/** Shows a page. */
export const go = (page: Page, of?: string): void => {
  location.hash = linkTo(page, of)
}
