/**
 * Times relative to now, with the exact time on hover.
 */
import { clockAtom } from "../state/live.ts"
import { useAtom } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"
import { ago, exactTime, shortWhen, when } from "./format.ts"

/** How long ago a time is; counts up while it is shown. */
export const Ago = ({ at }: { readonly at: number }) => (
  <time dateTime={new Date(at).toISOString()} title={exactTime(at)}>{ago(at, useAtom(clockAtom))}</time>
)

/** A time of day, with the day if it is another one. */
export const When = ({ at }: { readonly at: number }) => (
  <time dateTime={new Date(at).toISOString()} title={exactTime(at)}>{when(at)}</time>
)

/** Since when something is so: the time of day to the minute, with the day if it is another one. */
export const Since = ({ at }: { readonly at: number }) => (
  <time class="hint" dateTime={new Date(at).toISOString()} title={exactTime(at)}>
    {useTexts().common.since(shortWhen(at))}
  </time>
)
