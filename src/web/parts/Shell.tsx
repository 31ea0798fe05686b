/**
 * The frame of every page: navigation, connection, preferences, and the outcome of the last action.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { Overview } from "../pages/Overview.tsx"
import { dismissOutcome, outcomeAtom, report } from "../state/actions.ts"
import { connectionAtom, readEvents } from "../state/live.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { linkTo, type Page, pages, routeAtom } from "../state/route.ts"
import { sessionAtom, signOut } from "../state/session.ts"
import { Lazy, type PageView } from "./Loaded.tsx"
import { Preferences } from "./Preferences.tsx"

/** Pages are loaded when they are first shown. */
const loaders: Readonly<Record<Exclude<Page, "overview">, () => Promise<PageView>>> = {
  requests: () => import("../pages/requests/Requests.tsx").then((module) => module.Requests),
  playground: () => import("../playground/Playground.tsx").then((module) => module.Playground),
  keys: () => import("../pages/keys/Keys.tsx").then((module) => module.Keys),
  accounts: () => import("../pages/accounts/AccountsPage.tsx").then((module) => module.Accounts),
  upstreams: () => import("../pages/upstreams/Upstreams.tsx").then((module) => module.Upstreams),
  routes: () => import("../pages/routes/Routes.tsx").then((module) => module.Routes),
  settings: () => import("../pages/settings/Settings.tsx").then((module) => module.Settings),
  usage: () => import("../pages/usage/Usage.tsx").then((module) => module.Usage),
  samples: () => import("../pages/Samples.tsx").then((module) => module.Samples),
  transfer: () => import("../pages/Transfer.tsx").then((module) => module.Transfer),
  about: () => import("../pages/About.tsx").then((module) => module.About)
}

/** Pages that begin a group of the navigation. */
const groupStarts: ReadonlySet<string> = new Set(["keys", "usage", "transfer"])

const Connection = () => {
  const t = useTexts().common
  const connection = useAtom(connectionAtom)
  return (
    <p class={`connection ${connection}`} role="status" aria-label={t.connection}>
      <span class="dot" aria-hidden="true" />
      {t.connections[connection]}
    </p>
  )
}

const Outcome = () => {
  const t = useTexts().common
  const outcome = useAtom(outcomeAtom)
  useEffect(() => {
    if (outcome === undefined || outcome.failed) return
    const timer = setTimeout(dismissOutcome, 10_000)
    return () => clearTimeout(timer)
  }, [outcome])
  const toast = outcome !== undefined && (
    <p
      key={outcome.count}
      class={`toast ${outcome.failed ? "bad" : "good"}`}
      {...outcome.failed ? { role: "alert" } : {}}
    >
      <span>{outcome.text}</span>
      <button type="button" class="quiet" aria-label={t.dismiss} onClick={dismissOutcome}>×</button>
    </p>
  )
  return (
    <div class="outcome">
      <div role="status" aria-label={t.result}>{outcome?.failed === false && toast}</div>
      {outcome?.failed === true && toast}
    </div>
  )
}

const Navigation = ({ current }: { readonly current: Page }) => {
  const t = useTexts().common
  const [open, setOpen] = useState(false)
  useEffect(() => setOpen(false), [current])
  return (
    <>
      <button
        type="button"
        class="menu"
        aria-expanded={open}
        aria-controls="navigation"
        onClick={() => setOpen(!open)}
      >
        {t.menu}
      </button>
      <nav id="navigation" aria-label={t.main} class={open ? "open" : ""}>
        <ul>
          {pages.map((page) => (
            <li key={page} class={groupStarts.has(page) ? "group" : ""}>
              <a href={linkTo(page)} aria-current={page === current ? "page" : undefined}>{t.pages[page]}</a>
            </li>
          ))}
        </ul>
      </nav>
    </>
  )
}

export const Shell = () => {
  const t = useTexts()
  const route = useAtom(routeAtom)
  const session = useAtom(sessionAtom)
  const shown = useRef(route)
  useEffect(() => {
    const reading = new AbortController()
    void readEvents(reading.signal)
    return () => reading.abort()
  }, [])
  useEffect(() => {
    if (shown.current !== route) dismissOutcome()
    shown.current = route
  }, [route])
  const leave = async () => {
    const reason = await signOut()
    if (reason !== undefined) report(reason, true)
  }
  const load = route.page === "overview" ? undefined : loaders[route.page]
  return (
    <div class="shell">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault()
          document.querySelector<HTMLElement>("h1")?.focus()
        }}
      >
        {t.common.skip}
      </a>
      <header>
        <p class="brand">{t.common.product}</p>
        <Connection />
        <Navigation current={route.page} />
        <div class="foot">
          <Preferences />
          <button type="button" onClick={() => void leave()}>{t.common.signOut}</button>
        </div>
      </header>
      <main id="content">
        {session.inMemory && <p class="notice warn">{t.signIn.inMemory}</p>}
        {load === undefined ? <Overview /> : <Lazy key={route.page} load={load} of={route.of} />}
      </main>
      <Outcome />
    </div>
  )
}
