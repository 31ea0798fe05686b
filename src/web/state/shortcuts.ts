/**
 * The keys of the console: what handles them, and so what the list of keys shows.
 */
import { useEffect, useRef } from "preact/hooks"
import { type Page, pages } from "./route.ts"

export interface Shortcut {
  /** In lower case: `/`, `j`, `ctrl+k` (⌘K too), or two keys one after the other: `g o`. */
  readonly keys: string
  /** What it does. */
  readonly text: string
  readonly act: () => void
  /** Whether it does something now; always without. */
  readonly when?: () => boolean
}

/** The keys of each view that is shown. */
const shown = new Set<() => ReadonlyArray<Shortcut>>()

/** The keys that do something now. */
export const shortcutsNow = (): ReadonlyArray<Shortcut> =>
  [...shown].flatMap((of) => of()).filter(({ when }) => when?.() !== false)

/** Keys that work while the view is shown. */
export const useShortcuts = (shortcuts: ReadonlyArray<Shortcut>): void => {
  const now = useRef(shortcuts)
  now.current = shortcuts
  useEffect(() => {
    const of = () => now.current
    shown.add(of)
    return () => void shown.delete(of)
  }, [])
}

/** Whether keys belong to what has the focus: a field, or something that lies above the page. */
const isElsewhere = (target: EventTarget | null): boolean =>
  document.querySelector("dialog[open]") !== null ||
  (target instanceof Element &&
    target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], [popover]") !== null)

/** The first key of two. */
let before = ""

const pressed = (event: KeyboardEvent): void => {
  const isControl = event.ctrlKey || event.metaKey
  if (event.altKey || (!isControl && isElsewhere(event.target))) return
  const keys = `${before}${isControl ? "ctrl+" : ""}${event.key.toLowerCase()}`
  before = ""
  const all = shortcutsNow()
  const found = all.find((each) => each.keys === keys)
  if (found === undefined) {
    if (all.some((each) => each.keys.startsWith(`${keys} `))) before = `${keys} `
    return
  }
  event.preventDefault()
  found.act()
}

/** Handles the keys while the view is shown. */
export const useKeys = (): void =>
  useEffect(() => {
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [])

/** A letter for each page: the first one of its name that no page before it has. Sessions leave the others theirs. */
export const letterOf: ReadonlyMap<Page, string> = [...pages.filter((page) => page !== "sessions"), "sessions" as const]
  .reduce((letters, page) => {
    const taken = new Set(letters.values())
    return letters.set(page, [...page].find((letter) => !taken.has(letter)) ?? page)
  }, new Map<Page, string>())
