/**
 * How far each entry of the browser's history was scrolled, the page and the tables in it, so that Back returns to the place. The browser's
 * own way comes too early: a list is read before it is as long as it was.
 */

/** The most entries whose places are kept. */
const mostEntries = 100

/** The longest time that a page may take to become as long as it was, in frames. */
const mostFrames = 600

/** How far what scrolls was scrolled, in pixels, by its name: that of a table, or none for the page. */
type Places = Map<string, number>

const entries = new Map<number, Places>()
let current = 0
let frame = 0

/** What a hand does that looks for its own place. */
const signs = ["wheel", "touchmove", "pointerdown", "keydown"] as const

const scrollerOf = (name: string): Element | null =>
  name === "" ? document.scrollingElement : document.querySelector(`main .table-box[aria-label=${CSS.escape(name)}]`)

/** Takes up the entry that is shown now. A new one is named by its time: names outlast a reload of the page. */
export const enterPlace = (): void => {
  const { state } = history as { readonly state: { readonly place?: unknown } | null }
  current = typeof state?.place === "number" ? state.place : Date.now()
  if (state?.place !== current) history.replaceState({ place: current }, "")
}

const stop = (): void => {
  cancelAnimationFrame(frame)
  frame = 0
}

/** Scrolls to where the entry was, once the page is long enough; a new entry begins at the top. */
export const returnToPlace = (): void => {
  stop()
  const wanted = entries.get(current) ?? new Map<string, number>()
  if (!wanted.has("")) scrollTo(0, 0)
  const look = (frames: number) => {
    const left = [...wanted].filter(([name, top]) => {
      const scroller = scrollerOf(name)
      if (scroller !== null) scroller.scrollTop = top
      return scroller === null || Math.abs(scroller.scrollTop - top) > 1
    })
    frame = left.length === 0 || frames === 0 ? 0 : requestAnimationFrame(() => look(frames - 1))
  }
  look(mostFrames)
}

/** Begins to keep the places. */
export const keepPlaces = (): void => {
  history.scrollRestoration = "manual"
  enterPlace()
  for (const sign of signs) addEventListener(sign, stop, { capture: true, passive: true })
  addEventListener("scroll", ({ target }) => {
    const name = target instanceof Element ? target.matches(".table-box") && target.ariaLabel : ""
    if (frame !== 0 || name === false || name === null) return
    const places = entries.get(current) ?? new Map<string, number>()
    entries.delete(current)
    entries.set(current, places.set(name, scrollerOf(name)?.scrollTop ?? 0))
    const oldest = entries.keys().next().value
    if (entries.size > mostEntries && oldest !== undefined) entries.delete(oldest)
  }, { capture: true, passive: true })
}
