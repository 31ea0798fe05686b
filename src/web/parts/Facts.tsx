/** Lists of facts. */
import type { ComponentChildren } from "preact"

/** Names with their values. An `undefined` value leaves its name out. */
export const Facts = (
  { facts }: { readonly facts: ReadonlyArray<readonly [name: string, value: ComponentChildren | undefined]> }
) => (
  <dl class="facts">
    {facts.map(([name, value]) =>
      value === undefined ? null : (
        <>
          <dt key={`${name} name`}>{name}</dt>
          <dd key={name} class="text">{value}</dd>
        </>
      )
    )}
  </dl>
)
