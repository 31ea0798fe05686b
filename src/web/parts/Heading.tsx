/**
 * Headings of pages and of their sections.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { pageHelp } from "../state/help.ts"
import { returnToPlace } from "../state/places.ts"
import { useAtom } from "../state/registry.ts"
import { linkTo, routeAtom } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import { DurabilityNotice } from "./configuration.tsx"

let first = true

/** Called when something was shown before the first page, so that this page takes the focus too. */
export const leaveStart = (): void => {
  first = false
}

/** The pages that show or change the configuration. */
const configuring: ReadonlySet<string> = new Set([
  "overview",
  "keys",
  "models",
  "routes",
  "upstreams",
  "accounts",
  "settings",
  "webhooks",
  "transfer"
])

/**
 * A page's heading. It sets the window's title and takes the focus when the page opens, and has a link to what
 * the documents say about it. The page of one thing has above it the link to the list of all. Below it stands
 * why changes are refused or lost. `children` are the page's actions.
 */
export const Heading = ({ children, name }: { readonly name: string; readonly children?: ComponentChildren }) => {
  const t = useTexts()
  const { of, page } = useAtom(routeAtom)
  const ref = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${name} – ${t.common.product}`
  }, [name, t])
  useEffect(() => {
    // After a load, the focus stays where the browser put it.
    if (!first) ref.current?.focus()
    leaveStart()
    returnToPlace()
  }, [])
  return (
    <>
      <div class="heading">
        <div class="titles">
          {of !== undefined && (
            <p class="crumb">
              <a href={linkTo(page)}>{t.common.pages[page]}</a>
            </p>
          )}
          <div class="title">
            <h1 ref={ref} tabIndex={-1}>{name}</h1>
            <a
              class="help"
              href={pageHelp(page)}
              target="_blank"
              rel="noreferrer"
              title={t.common.help}
              aria-label={t.common.help}
            >
              ?
            </a>
          </div>
        </div>
        {children !== undefined && <div class="actions">{children}</div>}
      </div>
      {configuring.has(page) && <DurabilityNotice />}
    </>
  )
}

/** A section of a page: a landmark with its heading, and with its actions beside the heading. */
export const Section = ({ actions, children, class: kind, name }: {
  readonly name: string
  readonly actions?: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}) => (
  <section aria-label={name} class={kind}>
    {actions === undefined ? <h2>{name}</h2> : (
      <div class="actions between">
        <h2>{name}</h2>
        {actions}
      </div>
    )}
    {children}
  </section>
)
