/**
 * Records admin changes, each in the history and as a log line.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { type ChangedField, changedFields, type Difference } from "../../config/changedFields.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { shortenName } from "../../domain/GatewayError.ts"
import type { Change } from "../../usage/Change.ts"
import { type ChangeHistory, makeChangeHistory } from "../../usage/changes.ts"
import { defaultKeepDays, unconfirmed } from "../../usage/retention.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import type { Done } from "../middleware.ts"
import { Nodes } from "../nodes/Nodes.ts"

/** Who makes a change, and from where. */
export type Origin = Pick<Change, "who" | "address">

/** Bounds the fields of a log line. */
const mostLogged = 10

/** A text for one line of a terminal. */
const inLine = (text: string): string => shortenName(text).replaceAll(/\p{Cc}/gu, " ")

const valueText = (value: string | null): string => value === null ? "unset" : inLine(value)

const lineOf = ({ after, before, path }: ChangedField): string =>
  `${path.replaceAll(/\p{Cc}/gu, " ")}: ${valueText(before)} → ${valueText(after)}`

const fieldsText = ({ fields, more }: Difference): string => {
  const left = fields.length + more - Math.min(fields.length, mostLogged)
  return fields.slice(0, mostLogged).map(lineOf).join("; ") + (left > 0 ? `; and ${left} more` : "")
}

export class ChangeLog extends Context.Service<ChangeLog, {
  /**
   * Records what was done, with the fields of something that is not saved. A `change` of the configuration that changes nothing is left
   * out.
   */
  readonly record: (origin: Origin, action: string, done?: Done) => Effect.Effect<void>
  readonly read: ChangeHistory["read"]
}>()("model-gateway/admin/ChangeLog") {
  static readonly layer: Layer.Layer<ChangeLog, never, ConfigStore | Nodes | UsageStore> = Layer.effect(
    ChangeLog,
    Effect.gen(function*() {
      const config = yield* ConfigStore
      const { id: node } = yield* Nodes
      const history = (yield* UsageStore).changes ?? (yield* makeChangeHistory(() => defaultKeepDays, unconfirmed))

      const record = Effect.fnUntraced(function*({ address, who }: Origin, action: string, done?: Done) {
        const difference = done === undefined || "fields" in done
          ? { differs: true, fields: done?.fields ?? [], more: 0 }
          : yield* changedFields(done.before, done.after)
        if (!difference.differs) return
        const { fields, more } = difference
        const at = yield* Clock.currentTimeMillis
        yield* history.record({ at, who, address, action, fields, more_fields: more, node })
        yield* Effect.logInfo(`Admin change: ${action}`).pipe(Effect.annotateLogs({
          who: who.name === null ? who.kind : `${who.kind} ${inLine(who.name)}`,
          ...(address === null ? {} : { client: address }),
          ...(fields.length === 0 ? {} : { fields: fieldsText(difference) })
        }))
      })

      yield* config.ownChanges.pipe(
        Stream.runForEach(({ by, what, ...change }) =>
          by === "file"
            ? record({ who: { kind: by, name: what }, address: null }, "the configuration file was edited", change)
            : record({ who: { kind: by, name: null }, address: null }, what, change)
        ),
        Effect.forkScoped
      )
      return { record, read: history.read }
    })
  )
}
