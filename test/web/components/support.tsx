/** @jsxImportSource preact */
/**
 * Draws a component by itself, with the console's style sheet.
 */
/// <reference types="vite/client" />
import type { ComponentChildren } from "preact"
import { render } from "preact"
import { onTestFinished } from "vitest"
import "../../../src/web/style.css"

let drawn: HTMLElement | undefined

/** Draws a view, replacing the previous one of the same test. All files of the tests share this module: the end of each test removes its view. */
export const draw = (view: ComponentChildren): HTMLElement => {
  if (drawn === undefined) {
    const made = drawn = document.createElement("main")
    document.body.append(made)
    onTestFinished(() => {
      render(null, made)
      made.remove()
      drawn = undefined
    })
  }
  render(view, drawn)
  return drawn
}
