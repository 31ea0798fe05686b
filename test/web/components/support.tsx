/** @jsxImportSource preact */
/**
 * Draws a component by itself, with the console's style sheet.
 */
/// <reference types="vite/client" />
import type { ComponentChildren } from "preact"
import { render } from "preact"
import { afterEach } from "vitest"
import "../../../src/web/style.css"

let drawn: HTMLElement | undefined

/** Draws a view, replacing the previous one of the same test. */
export const draw = (view: ComponentChildren): HTMLElement => {
  if (drawn === undefined) {
    drawn = document.createElement("main")
    document.body.append(drawn)
  }
  render(view, drawn)
  return drawn
}

afterEach(() => {
  if (drawn === undefined) return
  render(null, drawn)
  drawn.remove()
  drawn = undefined
})
