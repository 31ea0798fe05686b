/**
 * A page's heading: its title is the window's, and it takes the focus when one comes to the page.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { useTexts } from "../state/preferences.ts"

let first = true

/** Says that something was shown before the pages: the first of them takes the focus too. */
export const leaveStart = (): void => {
  first = false
}

export const Heading = ({ children, name }: { readonly name: string; readonly children?: ComponentChildren }) => {
  const t = useTexts()
  const ref = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${name} – ${t.common.product}`
  }, [name, t])
  useEffect(() => {
    // When the page has just been opened, the browser's own start is the right one.
    if (!first) ref.current?.focus()
    leaveStart()
    scrollTo(0, 0)
  }, [])
  return (
    <div class="heading">
      <h1 ref={ref} tabIndex={-1}>{name}</h1>
      {children === undefined ? null : <div class="actions">{children}</div>}
    </div>
  )
}
