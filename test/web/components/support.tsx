/** @jsxImportSource preact */
/**
 * Draws a component on a page of its own, in the console's style.
 */
/// <reference types="vite/client" />
import type { ComponentChildren } from "preact"
import { render } from "preact"
import { afterEach } from "vitest"
import "../../../src/web/style.css"

let drawn: HTMLElement | undefined

/** Draws in the place of what was drawn before in the same test. */
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
