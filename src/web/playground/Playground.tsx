/**
 * The playground: talks to the gateway as a caller does, in any style.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useEffect, useRef, useState } from "preact/hooks"
import { acceptedKeys, configAtom } from "../pages/Durability.tsx"
import { previewOf } from "../pages/keys/preview.ts"
import { Heading } from "../parts/Heading.tsx"
import { Select } from "../parts/Select.tsx"
import { at } from "../state/client.ts"
import { failureText } from "../state/failure.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { linkTo } from "../state/route.ts"
import type { Style, Turn } from "./conversation.ts"
import { list, record, string, styles } from "./conversation.ts"
import { Code, RawFrames, Reasoning } from "./Output.tsx"
import type { Talk } from "./state.ts"
import { askOf, formAtom, newTalk, setForm, startTalk, stopTalk, talkAtom } from "./state.ts"

/** The models that the gateway lists to callers. */
const modelsAtom = Atom.make(
  Effect.tryPromise(async () => {
    const response = await fetch(at("/v1/models"), { credentials: "omit" })
    return list(record(await response.json())["data"]).map((model) => string(record(model)["id"]))
  })
)

const TurnView = ({ turn }: { readonly turn: Turn }) => {
  const t = useTexts().playground
  if (turn.role === "tool") {
    return (
      <div class="turn tool">
        <p class="who">{t.toolResult(turn.call.name)}</p>
        <pre>{turn.result}</pre>
      </div>
    )
  }
  return (
    <div class={`turn ${turn.role}`}>
      <p class="who">{t.roles[turn.role]}</p>
      {turn.text.trim() === "" ? null : <p class="said">{turn.text.trim()}</p>}
      {turn.role === "assistant"
        ? turn.calls.map((call) => (
          <p key={call.id} class="call">
            <span class="hint">{t.call}</span> <code>{call.name}({call.arguments})</code>
          </p>
        ))
        : null}
    </div>
  )
}

const Conversation = ({ talk }: { readonly talk: Talk }) => {
  const t = useTexts().playground
  const box = useRef<HTMLDivElement>(null)
  const { answer, failure, finish, note, running, turns } = talk
  useEffect(() => {
    const element = box.current
    // Follows what comes in, unless one has scrolled back.
    if (element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 240) {
      element.scrollTop = element.scrollHeight
    }
  }, [talk])
  return (
    <div ref={box} class="log" role="log" aria-label={t.conversation} aria-busy={running} tabIndex={0}>
      {turns.length === 0 && !running ? <p class="empty">{t.empty}</p> : null}
      {turns.slice(-100).map((turn, index) => <TurnView key={index} turn={turn} />)}
      {answer === undefined ? null : <TurnView turn={{ role: "assistant", ...answer }} />}
      {running && (answer === undefined || answer.text === "")
        ? <p class="hint waiting">{answer?.reasoning ? t.thinking : t.waiting}</p>
        : null}
      {failure === undefined ? null : <p class="notice bad" role="alert">{failure}</p>}
      {note === undefined ? null : <p class="notice">{t.notes[note]}</p>}
      {!running && finish !== undefined && failure === undefined
        ? <p class="hint">{t.finished(finish)}</p>
        : null}
    </div>
  )
}

export const Playground = () => {
  const texts = useTexts()
  const t = texts.playground
  const form = useAtom(formAtom)
  const talk = useAtom(talkAtom)
  const [code, setCode] = useState(false)
  const config = AsyncResult.value(useAtom(configAtom))
  const models = Option.getOrElse(AsyncResult.value(useAtom(modelsAtom)), (): ReadonlyArray<string> => [])
  const keys = Option.isSome(config) ? acceptedKeys(config.value) : []
  const key = keys[form.key] ?? keys[0]
  const send = (event: Event) => {
    event.preventDefault()
    if (key !== undefined) void startTalk(key, failureText)
  }
  const ready = key !== undefined && !talk.running && form.model.trim() !== "" &&
    (form.message.trim() !== "" || talk.turns.at(-1)?.role === "user")
  return (
    <>
      <Heading name={texts.common.pages.playground}>
        <button type="button" aria-expanded={code} onClick={() => setCode(!code)}>{t.code}</button>
        <button type="button" disabled={talk.turns.length === 0 && !talk.running} onClick={newTalk}>{t.newTalk}</button>
      </Heading>
      {Option.isSome(config) && keys.length === 0
        ? (
          <p class="notice warn">
            {t.noKeys} <a href={linkTo("keys")}>{texts.common.pages.keys}</a>
          </p>
        )
        : null}
      <div class="playground">
        <form class="card" id="playground-form" onSubmit={send}>
          <Select
            label={t.style}
            value={form.style}
            options={styles.map((style) => [style, t.styles[style]] as const)}
            onValue={(style) => setForm({ style: style as Style })}
          />
          <div class="field">
            <label for="playground-model">{t.model}</label>
            <input
              id="playground-model"
              type="text"
              list="playground-models"
              autocomplete="off"
              spellcheck={false}
              value={form.model}
              onInput={(event) => setForm({ model: event.currentTarget.value })}
            />
            <datalist id="playground-models">{models.map((model) => <option key={model} value={model} />)}</datalist>
          </div>
          <Select
            label={t.key}
            value={String(keys[form.key] === undefined ? 0 : form.key)}
            options={keys.slice(0, 200).map((each, index) => [String(index), previewOf(each)] as const)}
            onValue={(index) => setForm({ key: Number(index) })}
          />
          <label class="field">
            <span>{t.system}</span>
            <textarea
              rows={3}
              value={form.system}
              onInput={(event) => setForm({ system: event.currentTarget.value })}
            />
          </label>
          <div class="stack tight">
            <label class="check">
              <input
                type="checkbox"
                checked={form.stream}
                onChange={(event) => setForm({ stream: event.currentTarget.checked })}
              />
              <span>{t.stream}</span>
            </label>
            <label class="check">
              <input
                type="checkbox"
                aria-describedby="playground-tools"
                checked={form.tools}
                onChange={(event) => setForm({ tools: event.currentTarget.checked })}
              />
              <span>{t.tools}</span>
            </label>
            <p class="hint" id="playground-tools">{t.toolsHint}</p>
          </div>
        </form>
        <div class="card talk">
          <Conversation talk={talk} />
          <label class="field">
            <span>{t.message}</span>
            <textarea
              form="playground-form"
              rows={3}
              value={form.message}
              placeholder={t.placeholder}
              onInput={(event) => setForm({ message: event.currentTarget.value })}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && ready) send(event)
              }}
            />
          </label>
          <div class="actions">
            <button type="submit" form="playground-form" class="primary" disabled={!ready}>{t.send}</button>
            {talk.running ? <button type="button" onClick={stopTalk}>{t.stop}</button> : null}
            <span class="hint">{t.sendHint}</span>
          </div>
        </div>
      </div>
      {code ? <Code ask={askOf(form, talk.turns)} /> : null}
      {talk.reasoning === "" ? null : <Reasoning text={talk.reasoning} />}
      {talk.rounds.length === 0 ? null : <RawFrames rounds={talk.rounds} />}
    </>
  )
}
