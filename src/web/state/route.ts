/**
 * The route: the part of the address behind the hash. It contains everything that one chose on a page, so that Back restores
 * it and a link shows it to somebody else.
 */
import * as Atom from "effect/reactivity/Atom"
import { useEffect } from "preact/hooks"
import { enterPlace, keepPlaces } from "./places.ts"
import { registry, useAtom } from "./registry.ts"

export const pages = [
  "overview",
  "requests",
  "usage",
  "sessions",
  "playground",
  "keys",
  "models",
  "accounts",
  "upstreams",
  "routes",
  "settings",
  "webhooks",
  "transfer",
  "changes",
  "samples",
  "about"
] as const

export type Page = (typeof pages)[number]

/** What is chosen on a page, by name. An absent name has its default. */
export type Query = Readonly<Record<string, string>>

interface Route {
  readonly page: Page
  /** The part behind the page's name: the id of a request. */
  readonly of: string | undefined
  readonly query: Query
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
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s)
  const [name, ...rest] = path.split("/")
  return {
    page: isPage(name) ? name : "overview",
    of: rest.length === 0 ? undefined : decode(rest.join("/")),
    query: Object.fromEntries(new URLSearchParams(query))
  }
}

const queryText = (query: Query): string => {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString()
  return given === "" ? "" : `?${given}`
}

/** The address of a page, with what is chosen on it. */
export const linkTo = (page: Page, of?: string, query: Query = {}): string =>
  `#/${page}${of === undefined ? "" : `/${encodeURIComponent(of)}`}${queryText(query)}`

/** Whether leaving the page loses something. */
let isGuarded = false

/** The address that was asked for while leaving the page loses something; a dialog asks about it. */
export const leavingAtom = Atom.keepAlive(Atom.make<string | undefined>(undefined))

export const routeAtom = Atom.keepAlive(Atom.make((get): Route => {
  let shown = location.hash
  keepPlaces()
  const changed = () => {
    enterPlace()
    const next = parse(location.hash)
    if (isGuarded && next.page !== parse(shown).page) {
      const wanted = location.hash
      history.replaceState(history.state, "", shown || "#/")
      return registry.set(leavingAtom, wanted)
    }
    shown = location.hash
    return get.setSelf(next)
  }
  addEventListener("hashchange", changed)
  get.addFinalizer(() => removeEventListener("hashchange", changed))
  return parse(location.hash)
}))

/** Shows a page. */
export const go = (page: Page, of?: string, query?: Query): void => {
  location.hash = linkTo(page, of, query)
}

/** Changes what is chosen on the page that is shown; an empty value removes a name. Back skips the earlier choice. */
export const choose = (changes: Query): void => {
  const { of, page, query } = registry.get(routeAtom)
  history.replaceState(history.state, "", linkTo(page, of, { ...query, ...changes }))
  dispatchEvent(new HashChangeEvent("hashchange"))
}

/** What is chosen on the page that is shown. */
export const useQuery = (): Query => useAtom(routeAtom).query

const askBrowser = (event: BeforeUnloadEvent): void => event.preventDefault()

/** Asks before the page is left while `isUnsaved`: by a link, Back, a reload, or by closing the window. */
export const useUnsaved = (isUnsaved: boolean): void => {
  useEffect(() => {
    if (!isUnsaved) return
    isGuarded = true
    addEventListener("beforeunload", askBrowser)
    return () => {
      isGuarded = false
      removeEventListener("beforeunload", askBrowser)
    }
  }, [isUnsaved])
}

/** Answers the question of `leavingAtom`. */
export const answerLeaving = (leaves: boolean): void => {
  const wanted = registry.get(leavingAtom)
  registry.set(leavingAtom, undefined)
  if (!leaves || wanted === undefined) return
  isGuarded = false
  location.hash = wanted
}
