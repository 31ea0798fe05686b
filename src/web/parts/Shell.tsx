/**
 * The frame of every page: navigation, connection, preferences, and the outcome of the last action.
 */
import { useEffect, useReducer, useRef, useState } from "preact/hooks"
import { Overview } from "../pages/overview/Overview.tsx"
import { dismissOutcome, type Outcome, outcomeAtom } from "../state/actions.ts"
import { keysAtom, nearLimits, problemsEvery, troubled } from "../state/attention.ts"
import { clockAtom, connectionAtom, contactAtom, poolAtom, readEvents, resetLists, useReread } from "../state/live.ts"
import { failingAtom, readAllAgain } from "../state/reads.ts"
import { registry, useAtom, useValue } from "../state/registry.ts"
import { answerLeaving, go, leavingAtom, linkTo, type Page, pages, routeAtom } from "../state/route.ts"
import { sessionAtom } from "../state/session.ts"
import { letterOf, type Shortcut, shortcutsNow, useKeys, useShortcuts } from "../state/shortcuts.ts"
import { useTexts } from "../state/texts.ts"
import { upstreamsAtom } from "../state/upstreams.ts"
import { Dialog } from "./Dialog.tsx"
import { countdown, number, timeOfDay } from "./format.ts"
import { Icon, Mark } from "./Icon.tsx"
import { Lazy, type PageView } from "./Loaded.tsx"
import { Person } from "./Person.tsx"
import { isHeld } from "./still.ts"
import { useWholeTexts } from "./wholeTexts.ts"

/** Pages are loaded when they are first shown. */
const loaders: Readonly<Record<Exclude<Page, "overview">, () => Promise<PageView>>> = {
  requests: () => import("../pages/requests/Requests.tsx").then((module) => module.Requests),
  playground: () => import("../playground/Playground.tsx").then((module) => module.Playground),
  keys: () => import("../pages/keys/Keys.tsx").then((module) => module.Keys),
  models: () => import("../pages/models/Models.tsx").then((module) => module.Models),
  accounts: () => import("../pages/accounts/AccountsPage.tsx").then((module) => module.Accounts),
  upstreams: () => import("../pages/upstreams/Upstreams.tsx").then((module) => module.Upstreams),
  routes: () => import("../pages/routes/Routes.tsx").then((module) => module.Routes),
  settings: () => import("../pages/settings/Settings.tsx").then((module) => module.Settings),
  webhooks: () => import("../pages/Webhooks.tsx").then((module) => module.Webhooks),
  usage: () => import("../pages/usage/Usage.tsx").then((module) => module.Usage),
  sessions: () => import("../pages/Sessions.tsx").then((module) => module.Sessions),
  samples: () => import("../pages/Samples.tsx").then((module) => module.Samples),
  transfer: () => import("../pages/Transfer.tsx").then((module) => module.Transfer),
  changes: () => import("../pages/Changes.tsx").then((module) => module.Changes),
  about: () => import("../pages/About.tsx").then((module) => module.About)
}

/** Pages that begin a group of the navigation. */
const groupStarts: ReadonlySet<string> = new Set(["keys", "settings", "samples"])

/** Warns while nothing arrives from the gateway: what the page shows is of an earlier time. */
const Stale = () => {
  const t = useTexts().common
  const { last, next } = useAtom(contactAtom)
  const now = useAtom(clockAtom)
  return (
    <p class="notice warn" role="status" aria-label={t.staleness}>
      {last === 0 ? t.noContact : t.asOf(timeOfDay(last))}{" "}
      {next > now ? t.nextTry(countdown((next - now) / 1000)) : t.trying}
    </p>
  )
}

/** Asks whether unsaved changes may be lost. */
const Leaving = () => {
  const t = useTexts().common
  if (useAtom(leavingAtom) === undefined) return null
  return (
    <Dialog name={t.unsaved} onClose={() => answerLeaving(false)}>
      <p>{t.unsavedAsk}</p>
      <div class="actions">
        <button type="button" onClick={() => answerLeaving(false)}>{t.stay}</button>
        <button type="button" class="danger" onClick={() => answerLeaving(true)}>{t.leave}</button>
      </div>
    </Dialog>
  )
}

/** The palette's code is loaded when it is first opened. */
const loadPalette = () => import("./Palette.tsx").then((module) => module.Palette)

/** The first page has no menu. One that was opened before its code is here opens then. */
const loadMenu = () => import("./Menu.tsx").then((module) => module.MenuHost)

/** The list of keys too. */
const loadShortcuts = () => import("./Shortcuts.tsx").then((module) => module.Shortcuts)

const filterOfPage = () => document.querySelector<HTMLElement>("main [data-filter]")

/** The keys of every page. */
const usePageKeys = (onPalette: () => void, onList: () => void): void => {
  const t = useTexts().common
  useKeys()
  useShortcuts([
    { keys: "ctrl+k", text: t.goTo, act: onPalette },
    { keys: "/", text: t.toFilter, act: () => filterOfPage()?.focus(), when: () => filterOfPage() !== null },
    { keys: "?", text: t.keysOf, act: onList },
    ...pages.map((page) => ({ keys: `g ${letterOf.get(page)}`, text: t.toPage(t.pages[page]), act: () => go(page) }))
  ])
}

/** Whether events arrive, and whether everything in sight could be read. */
const Connection = () => {
  const t = useTexts().common
  const connection = useAtom(connectionAtom)
  const isPart = useAtom(failingAtom) > 0 && connection === "live"
  const state = isPart ? "part" : connection
  return (
    <p class={`connection ${state}`} role="status" aria-label={t.connection}>
      <span class="dot" aria-hidden="true" />
      {t.connections[state]}
    </p>
  )
}

/** How an action ended. What failed stays; what succeeded goes after 10 seconds, unless the hand is at it. */
const Toast = ({ onGone, outcome }: { readonly outcome: Outcome; readonly onGone: () => void }) => {
  const t = useTexts().common
  const toast = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    if (outcome.failed) return
    const end = () => {
      if (isHeld(toast.current)) timer = setTimeout(end, 1_000)
      else onGone()
    }
    let timer = setTimeout(end, 10_000)
    // What is done next on the page makes the last outcome old news, unless it offers to take it back.
    const content = outcome.undo === undefined ? document.getElementById("content") : null
    const pressed = ({ target }: Event) => {
      if (!(target instanceof Element) || target.closest("dialog") === null) onGone()
    }
    content?.addEventListener("pointerdown", pressed)
    return () => {
      clearTimeout(timer)
      content?.removeEventListener("pointerdown", pressed)
    }
  }, [outcome])
  return (
    <p
      ref={toast}
      class={`toast ${outcome.failed ? "bad" : "good"}`}
      {...outcome.failed ? { role: "alert" } : {}}
    >
      <span>{outcome.text}</span>
      {outcome.undo !== undefined && (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            onGone()
            outcome.undo?.()
          }}
        >
          {t.undo}
        </button>
      )}
      <button type="button" class="quiet" aria-label={t.dismiss} onClick={onGone}>
        <Icon name="close" />
      </button>
    </p>
  )
}

/** The last outcome, and beside it the one before, while the hand is at its offer to take it back. */
const Outcomes = () => {
  const t = useTexts().common
  const outcome = useAtom(outcomeAtom)
  const box = useRef<HTMLDivElement>(null)
  const last = useRef(outcome)
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0)
  const kept = useRef<Outcome>(undefined)
  if (outcome !== last.current) {
    if (outcome !== undefined && last.current?.undo !== undefined && isHeld(box.current)) kept.current = last.current
    last.current = outcome
  }
  const release = () => {
    kept.current = undefined
    redraw()
  }
  const succeeded = [kept.current, outcome].flatMap((each) => each?.failed === false ? [each] : [])
  return (
    <div class="outcome">
      <div ref={box} role="status" aria-label={t.result}>
        {succeeded.map((each) => (
          <Toast key={each.count} outcome={each} onGone={each === outcome ? dismissOutcome : release} />
        ))}
      </div>
      {outcome?.failed === true && <Toast key={outcome.count} outcome={outcome} onGone={dismissOutcome} />}
    </div>
  )
}

/** How many entries of a page need attention: accounts out of rotation, upstreams that are left out, keys near a limit. */
const useProblems = (): Readonly<Partial<Record<Page, readonly [count: number, text: string]>>> => {
  const t = useTexts().common
  const pool = useAtom(poolAtom)
  const accounts = (pool?.out ?? 0) + (pool?.cooling ?? 0) + (pool?.failed_tests ?? 0)
  useReread(upstreamsAtom, problemsEvery)
  useReread(keysAtom, problemsEvery)
  const upstreams = troubled(useValue(upstreamsAtom)?.upstreams ?? []).length
  const keys = nearLimits(useValue(keysAtom)?.items ?? []).length
  return {
    accounts: [accounts, t.heldBack(accounts)],
    upstreams: [upstreams, t.leftOut(upstreams)],
    keys: [keys, t.nearLimits(keys)]
  }
}

const Problems = ({ of: [count, text] }: { readonly of: readonly [count: number, text: string] }) =>
  count === 0 ? null : (
    <span class="count" title={text}>
      <span aria-hidden="true">{number(count)}</span>
      <span class="sr-only">{text}</span>
    </span>
  )

const Navigation = ({ current }: { readonly current: Page }) => {
  const t = useTexts().common
  const [open, setOpen] = useState(false)
  const problems = useProblems()
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
              <a href={linkTo(page)} aria-current={page === current ? "page" : undefined}>
                <Icon name={page} />
                <span>{t.pages[page]}</span>
              </a>
              {problems[page] !== undefined && <Problems of={problems[page]} />}
            </li>
          ))}
        </ul>
      </nav>
    </>
  )
}

interface KeyList {
  readonly View: Awaited<ReturnType<typeof loadShortcuts>>
  readonly of: ReadonlyArray<Shortcut>
}

export const Shell = () => {
  const t = useTexts()
  const route = useAtom(routeAtom)
  const session = useAtom(sessionAtom)
  const connection = useAtom(connectionAtom)
  const [palette, setPalette] = useState<{ readonly View: Awaited<ReturnType<typeof loadPalette>> }>()
  const shown = useRef(route.page)
  const [keys, setKeys] = useState<KeyList>()
  const [menu, setMenu] = useState<{ readonly Host: Awaited<ReturnType<typeof loadMenu>> }>()
  const openPalette = () => void loadPalette().then((View) => setPalette({ View }), () => undefined)
  const openKeys = () => {
    const of = shortcutsNow()
    void loadShortcuts().then((View) => setKeys({ View, of }), () => undefined)
  }
  usePageKeys(openPalette, openKeys)
  useWholeTexts()
  useEffect(() => {
    void loadMenu().then((Host) => setMenu({ Host }), () => undefined)
  }, [])
  const isIn = session.state === "in"
  const hasEnded = useRef(false)
  useEffect(() => {
    if (!isIn) return
    // What was refused meanwhile is read again.
    if (hasEnded.current) {
      readAllAgain()
      resetLists()
    }
    hasEnded.current = true
    const reading = new AbortController()
    void readEvents(reading.signal)
    return () => reading.abort()
  }, [isIn])
  useEffect(() => {
    // An offer to take something back holds on every page.
    if (shown.current !== route.page && registry.get(outcomeAtom)?.undo === undefined) dismissOutcome()
    shown.current = route.page
  }, [route.page])
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
        <p class="brand">
          <Mark />
          {t.common.product}
        </p>
        <Connection />
        <button type="button" class="search" onClick={openPalette}>
          <Icon name="search" />
          <span>{t.common.goTo}</span>
          <kbd aria-hidden="true">Ctrl K</kbd>
        </button>
        <Navigation current={route.page} />
        <Outcomes />
        <div class="foot">
          <Person />
        </div>
      </header>
      <main id="content" class={connection === "reconnecting" ? "stale" : ""}>
        {connection === "reconnecting" && <Stale />}
        {session.inMemory && <p class="notice warn">{t.signIn.inMemory}</p>}
        {load === undefined ? <Overview /> : <Lazy key={route.page} load={load} of={route.of} />}
        {menu !== undefined && <menu.Host />}
      </main>
      <Leaving />
      {keys !== undefined && <keys.View of={keys.of} onClose={() => setKeys(undefined)} />}
      {palette !== undefined && <palette.View shown={pages} onClose={() => setPalette(undefined)} />}
    </div>
  )
}
