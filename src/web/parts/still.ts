/**
 * Lists that hold still under the hand: while somebody points at their rows, has a menu or the focus of the keyboard in them, or has
 * selected something there, no row leaves, arrives or moves. The values in the rows go on changing.
 */
import { createContext, type RefObject } from "preact"
import { useLayoutEffect, useReducer, useRef } from "preact/hooks"

/** The read whose value is shown: the rows of another one are another list. */
export const ReadContext = createContext<unknown>(undefined)

/** What makes rows hold still where it is in them: the keyboard's focus, an open menu or pop-up, a row that is chosen. */
const held = ":focus-visible, [aria-haspopup][aria-expanded=true], :popover-open, .select input:checked"

/** Where the pointer moved last. One that rests where a dialog was points at nothing. */
let pointed: EventTarget | null = null
const point = ({ target }: MouseEvent) => {
  pointed = target
}

const isPointedAt = (rows: Element): boolean =>
  rows.matches(":hover") && pointed instanceof Node && rows.contains(pointed)

/** Whether something in an element is selected. */
const isSelected = (element: Element): boolean => {
  const selection = getSelection()
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true)
}

/** Whether the hand is at the rows in an element. */
export const isHeld = (rows: Element | null): boolean => {
  if (rows === null) return false
  return isPointedAt(rows) || rows.querySelector(held) !== null || isSelected(rows)
}

/** How many rows came and went; an order that changed alone counts as one change. */
export const changesBetween = <Key>(before: ReadonlyArray<Key>, now: ReadonlyArray<Key>): number => {
  const [had, has] = [new Set(before), new Set(now)]
  const kept = before.filter((key) => has.has(key))
  const stayed = now.filter((key) => had.has(key))
  const isMoved = kept.some((key, index) => key !== stayed[index])
  return before.length - kept.length + now.length - stayed.length + (isMoved ? 1 : 0)
}

/** What ends a hold when it happens anywhere on the page. */
const signs = ["mousemove", "mouseout", "focusin", "focusout", "toggle", "change", "selectionchange"] as const

/** A list as it is shown. */
export interface Still<Row, Rows extends Element> {
  /** Where the rows are. */
  readonly ref: RefObject<Rows | null>
  readonly shown: ReadonlyArray<Row>
  /** How many changes wait for the hand to leave. */
  readonly changes: number
  /** Shows them. */
  readonly take: () => void
}

/**
 * The rows of a list in the order in which they were shown for as long as they are held. `keyOf` names a row. `view` is everything that
 * the list is chosen by: another one shows its own rows immediately.
 */
export const useStill = <Row, Rows extends Element>(
  rows: ReadonlyArray<Row>,
  keyOf: (row: Row, index: number) => unknown,
  view: ReadonlyArray<unknown>
): Still<Row, Rows> => {
  const ref = useRef<Rows>(null)
  const before = useRef<{ readonly rows: ReadonlyArray<Row>; readonly view: ReadonlyArray<unknown> }>(undefined)
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0)
  const last = before.current
  const isSame = last !== undefined && last.rows.length > 0 && view.every((each, index) => each === last.view[index])
  const next = new Map(rows.map((row, index) => [keyOf(row, index), row]))
  const shown = isSame && isHeld(ref.current)
    ? last.rows.map((row, index) => next.get(keyOf(row, index)) ?? row)
    : rows
  before.current = { rows: shown, view }
  const changes = shown === rows ? 0 : changesBetween(shown.map(keyOf), [...next.keys()])
  // The document keeps one listener, however many lists are drawn.
  useLayoutEffect(() => document.addEventListener("mousemove", point, { capture: true, passive: true }), [])
  useLayoutEffect(() => {
    if (changes === 0) return
    const look = () => {
      // What the event changes is known after it.
      setTimeout(() => {
        if (!isHeld(ref.current)) redraw()
      })
    }
    for (const sign of signs) document.addEventListener(sign, look, true)
    return () => {
      for (const sign of signs) document.removeEventListener(sign, look, true)
    }
  }, [changes > 0])
  return {
    ref,
    shown,
    changes,
    take: () => {
      before.current = undefined
      redraw()
    }
  }
}

/** A value as it was while a part of what it is drawn as is selected: writing the text anew would end the selection. */
export const useSelectable = <Value, Text extends Element>(value: Value) => {
  const ref = useRef<Text>(null)
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0)
  const shown = useRef(value)
  if (ref.current === null || !isSelected(ref.current)) shown.current = value
  const isBehind = shown.current !== value
  useLayoutEffect(() => {
    if (!isBehind) return
    const look = () => {
      if (ref.current === null || !isSelected(ref.current)) redraw()
    }
    document.addEventListener("selectionchange", look)
    return () => document.removeEventListener("selectionchange", look)
  }, [isBehind])
  return { ref, shown: shown.current }
}
