/**
 * The targets of a route in order, which buttons, arrow keys and dragging change.
 */
import type { TargetedKeyboardEvent, TargetedPointerEvent } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { useTexts } from "../../state/texts.ts"
import { moved, type RouteNow } from "./choice.ts"
import { TargetState } from "./TargetState.tsx"

/** Where the focus goes after the next drawing: to a button of a target, or to the field behind the list. */
type Focus = { readonly target: string; readonly button: "up" | "down" }

/** The index of the row at a height of the window. */
const rowAt = (list: HTMLElement, y: number): number => {
  const rows = [...list.children]
  const index = rows.findIndex((row) => y < row.getBoundingClientRect().bottom)
  return index === -1 ? rows.length - 1 : index
}

export const TargetList = ({ now, onEmptied, onTargets, onWeight }: {
  /** The targets with their states. */
  readonly now: RouteNow
  readonly onTargets: (targets: ReadonlyArray<string>) => void
  /** A target gets another weight. Weights are shown where they count. */
  readonly onWeight: (target: string, weight: number) => void
  /** The removed target was the last one, or the focus has no row to go to. */
  readonly onEmptied: () => void
}) => {
  const t = useTexts().routes
  const list = useRef<HTMLOListElement>(null)
  const focus = useRef<Focus | undefined>(undefined)
  const [said, say] = useState("")
  const [dragged, setDragged] = useState<string>()
  const targets = now.targets.map(({ text }) => text)

  // A moved row loses the focus.
  useLayoutEffect(() => {
    const { current } = focus
    if (current === undefined) return
    focus.current = undefined
    const row = list.current?.children[targets.indexOf(current.target)]
    row?.querySelector<HTMLElement>(`[data-move=${current.button}]`)?.focus()
  })

  const move = (from: number, to: number, button?: Focus["button"]) => {
    const next = moved(targets, from, to)
    const target = targets[from]!
    if (next === targets) return say(t.atEnd(target, from + 1, targets.length))
    if (button !== undefined) focus.current = { target, button }
    say(t.movedTo(target, to + 1, targets.length))
    return onTargets(next)
  }
  const remove = (at: number) => {
    const next = targets.toSpliced(at, 1)
    say(t.removed(targets[at]!))
    onTargets(next)
    const target = next[Math.min(at, next.length - 1)]
    if (target === undefined) onEmptied()
    else focus.current = { target, button: "up" }
  }
  const onKey = (event: TargetedKeyboardEvent<HTMLElement>, at: number) => {
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: targets.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    move(at, to, to < at ? "up" : "down")
  }
  const onDrag = (event: TargetedPointerEvent<HTMLElement>) => {
    if (dragged === undefined || list.current === null) return
    const from = targets.indexOf(dragged)
    const to = rowAt(list.current, event.clientY)
    if (to !== from) move(from, to)
  }
  const drop = () => setDragged(undefined)
  return (
    <>
      <ol ref={list} class="targets" aria-label={t.targets}>
        {now.targets.map((target, at) => (
          <li
            key={target.text}
            class={`target ${dragged === target.text ? "dragged" : ""}`}
            onKeyDown={(event) => onKey(event, at)}
          >
            <span
              class="handle"
              aria-hidden="true"
              onPointerDown={(event) => {
                event.preventDefault()
                event.currentTarget.setPointerCapture(event.pointerId)
                setDragged(target.text)
              }}
              onPointerMove={onDrag}
              onPointerUp={drop}
              onPointerCancel={drop}
              onLostPointerCapture={drop}
            >
              ⠿
            </span>
            <span class="place">{at + 1}</span>
            <div class="what">
              <code>{target.text}</code>
              <TargetState target={target} isTaken={now.taken === at} />
            </div>
            <div class="moves">
              {target.weight !== undefined && (
                <input
                  type="number"
                  class="weight"
                  min={1}
                  max={1000}
                  required
                  aria-label={t.weightOf(target.text)}
                  value={target.weight}
                  onKeyDown={(event) => event.stopPropagation()}
                  onInput={({ currentTarget }) => {
                    if (currentTarget.validity.valid) onWeight(target.text, currentTarget.valueAsNumber)
                  }}
                />
              )}
              <button
                type="button"
                class="quiet"
                data-move="up"
                aria-label={t.moveUp(target.text)}
                aria-disabled={at === 0}
                onClick={() => move(at, at - 1, "up")}
              >
                ↑
              </button>
              <button
                type="button"
                class="quiet"
                data-move="down"
                aria-label={t.moveDown(target.text)}
                aria-disabled={at === targets.length - 1}
                onClick={() => move(at, at + 1, "down")}
              >
                ↓
              </button>
              <button type="button" class="quiet danger" aria-label={t.remove(target.text)} onClick={() => remove(at)}>
                ×
              </button>
            </div>
          </li>
        ))}
      </ol>
      <p class="sr-only" role="status" aria-label={t.moves}>{said}</p>
    </>
  )
}
