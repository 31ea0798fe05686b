/**
 * The conversation of a request with the reply as its last turn, as text or JSON; and how the reply differs from the upstream's.
 */
import { useMemo, useState } from "preact/hooks"
import { Chip } from "../../parts/Card.tsx"
import { CopyButton } from "../../parts/Copy.tsx"
import { Section } from "../../parts/Heading.tsx"
import { useSelectable } from "../../parts/still.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { choose, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { asJson, asText, type ShownTurn, turnsOf } from "./conversationText.ts"
import { differenceOf } from "./diff.ts"
import { readable, shownCharacters } from "./readable.ts"

/** The newest turns are shown immediately, and this many on demand. */
const [turnsAtFirst, turnsAtMost] = [12, 200]
/** Characters of a turn before it is unfolded, for the last two and for those before them. */
const [foldedCharacters, foldedBefore] = [4_000, 600]

/** A text whose end is folded if it is long. */
const LongText = ({ class: kind = "", most = foldedCharacters, text }: {
  readonly text: string
  readonly class?: string
  readonly most?: number
}) => {
  const t = useTexts().inspector
  const [whole, setWhole] = useState(false)
  const { ref, shown } = useSelectable<string, HTMLParagraphElement>(text.slice(0, whole ? shownCharacters : most))
  return (
    <>
      <p ref={ref} class={kind}>{shown}{shown.length < text.length && "…"}</p>
      {!whole && shown.length < text.length && (
        <button type="button" class="quiet start" onClick={() => setWhole(true)}>{t.showAll(text.length)}</button>
      )}
      {whole && text.length > shownCharacters && <p class="hint">{t.shownInPart(text.length)}</p>}
    </>
  )
}

const TurnView = ({ isOpen, most, turn }: {
  readonly turn: ShownTurn
  readonly most: number
  /** The reply still runs. */
  readonly isOpen: boolean
}) => {
  const t = useTexts().inspector
  const { call_id, calls, finish, isReply, reasoning, role } = turn
  const text = turn.text.trim()
  const name = isReply ? t.reply : t.roles(role)
  return (
    <div class={`turn ${role} ${isReply ? "reply" : ""}`}>
      <div class="who">
        <span>{name}{call_id ? ` · ${call_id}` : ""}</span>
        {text !== "" && <CopyButton name={name} text={turn.text} />}
      </div>
      {reasoning !== "" && (
        <details>
          <summary>{t.reasoningOf(reasoning.length)}</summary>
          <LongText class="said thought" text={reasoning} />
        </details>
      )}
      {text !== "" && <LongText class="said" text={text} most={most} />}
      {calls.map((call, i) => (
        <div key={`${call.id} ${i}`} class="call">
          <p>
            <span class="hint">{t.calls}{" "}</span>
            <code>{call.name}</code>
          </p>
          <pre>{readable(call.arguments).slice(0, shownCharacters)}</pre>
        </div>
      ))}
      {isReply && !isOpen && text === "" && calls.length === 0 && <p class="hint">{t.emptyReply}</p>}
      {isReply && <p class="hint">{finish !== null ? t.finish(finish) : isOpen ? t.goesOn : t.notEnded}</p>}
    </div>
  )
}

/** The upstream's text, with what the gateway took out and put in. */
const Difference = ({ after, before }: { readonly before: string; readonly after: string }) => {
  const t = useTexts().inspector
  const stretches = useMemo(() => differenceOf(before, after), [before, after])
  return (
    <details>
      <summary>{t.asUpstream}</summary>
      <p class="hint">{t.asUpstreamHint}</p>
      <pre class="card body" tabIndex={0} role="group" aria-label={t.asUpstream}>
        {stretches.map(({ kind, text }, i) =>
          kind === "removed"
            ? <del key={i}>{text}</del>
            : kind === "added"
            ? <ins key={i}>{text}</ins>
            : <span key={i}>{text}</span>
        )}
      </pre>
    </details>
  )
}

export const Conversation = ({ record }: { readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  const isJson = useQuery()["turns"] === "json"
  const { conversation, reply, upstream_reply } = record
  const turns = useMemo(() => turnsOf({ conversation, reply }), [conversation, reply])
  const json = useMemo(() => isJson ? asJson(turns) : "", [turns, isJson])
  const before = upstream_reply?.text
  const after = reply?.text
  const differs = typeof before === "string" && typeof after === "string" && before !== after &&
    record.outcome !== "open"
  const [all, setAll] = useState(false)
  const earlier = turns.length - turnsAtFirst
  const shown = turns.slice(all ? -turnsAtMost : -turnsAtFirst)
  const kinds = [["", t.asText], ["json", t.asJson]] as const
  return (
    <Section
      name={t.conversation}
      actions={turns.length > 0 && (
        <div class="actions">
          <div class="actions" role="group" aria-label={t.shownAs}>
            {kinds.map(([kind, text]) => (
              <Chip
                key={kind}
                pressed={isJson === (kind === "json")}
                onClick={() => choose({ turns: kind })}
              >
                {text}
              </Chip>
            ))}
          </div>
          <CopyButton name={t.conversation} text={isJson ? json : asText(turns)} />
        </div>
      )}
    >
      {conversation === null && <p class="hint">{record.bodies_kept ? t.notDecoded : t.bodiesGone}</p>}
      {turns.length > 0 && (isJson
        ? (
          <div class="card body" tabIndex={0} role="group" aria-label={t.conversation}>
            <pre>{json.slice(0, shownCharacters)}</pre>
            {json.length > shownCharacters && <p class="hint">{t.shownInPart(json.length)}</p>}
          </div>
        )
        : (
          <div class="card turns">
            {earlier > 0 && !all && (
              <button type="button" class="quiet start" onClick={() => setAll(true)}>{t.earlierTurns(earlier)}</button>
            )}
            {all && turns.length > turnsAtMost && <p class="hint">{t.lastTurns(turnsAtMost, turns.length)}</p>}
            {shown.map((turn, index) => (
              <TurnView
                key={turns.length - shown.length + index}
                turn={turn}
                isOpen={record.outcome === "open"}
                most={shown.length - index > 2 ? foldedBefore : foldedCharacters}
              />
            ))}
            {differs && <Difference before={before} after={after} />}
          </div>
        ))}
      {reply?.truncated === true && <p class="hint">{t.replyTruncated}</p>}
    </Section>
  )
}
