/**
 * The playground: sends requests to the gateway like a caller, in any style.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useEffect, useRef, useState } from "preact/hooks"
import { useAcceptedKeys } from "../pages/configuration.tsx"
import { previewOf } from "../pages/keys/keys.ts"
import { Check, Failure, Select, TextArea } from "../parts/Form.tsx"
import { Heading } from "../parts/Heading.tsx"
import { at } from "../state/client.ts"
import { list, record, string } from "../state/json.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { linkTo } from "../state/route.ts"
import { styles, type Turn } from "./conversation.ts"
import { Code, RawFrames, Reasoning } from "./Output.tsx"
import {
  type Conversation,
  conversationAtom,
  formAtom,
  newConversation,
  promptOf,
  sendForm,
  setForm,
  stopReply
} from "./state.ts"

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
      {turn.text.trim() !== "" && <p class="said">{turn.text.trim()}</p>}
      {turn.role === "assistant" && turn.calls.map((call) => (
        <p key={call.id} class="call">
          <span class="hint">{t.call}</span> <code>{call.name}({call.arguments})</code>
        </p>
      ))}
    </div>
  )
}

const ConversationLog = ({ conversation }: { readonly conversation: Conversation }) => {
  const t = useTexts().playground
  const box = useRef<HTMLDivElement>(null)
  const { answer, failure, finish, note, running, turns } = conversation
  useEffect(() => {
    const element = box.current
    // Scrolls along with the reply, unless the reader has scrolled back.
    if (element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 240) {
      element.scrollTop = element.scrollHeight
    }
  }, [conversation])
  return (
    <div ref={box} class="log" role="log" aria-label={t.conversation} aria-busy={running} tabIndex={0}>
      {turns.length === 0 && !running && <p class="empty">{t.empty}</p>}
      {turns.slice(-100).map((turn, index) => <TurnView key={index} turn={turn} />)}
      {answer !== undefined && <TurnView turn={{ role: "assistant", ...answer }} />}
      {running && (answer === undefined || answer.text === "") && (
        <p class="hint waiting">{answer?.reasoning ? t.thinking : t.waiting}</p>
      )}
      <Failure text={failure} />
      {note !== undefined && <p class="notice">{t.notes[note]}</p>}
      {!running && finish !== undefined && failure === undefined && <p class="hint">{t.finished(finish)}</p>}
    </div>
  )
}

export const Playground = () => {
  const { common, playground: t, requests } = useTexts()
  const form = useAtom(formAtom)
  const conversation = useAtom(conversationAtom)
  const [code, setCode] = useState(false)
  const models = Option.getOrElse(AsyncResult.value(useAtom(modelsAtom)), (): ReadonlyArray<string> => [])
  const accepted = useAcceptedKeys()
  const keys = accepted ?? []
  const key = keys[form.key] ?? keys[0]
  const send = (event: Event) => {
    event.preventDefault()
    if (key !== undefined) void sendForm(key)
  }
  const ready = key !== undefined && !conversation.running && form.model.trim() !== "" &&
    (form.message.trim() !== "" || conversation.turns.at(-1)?.role === "user")
  return (
    <>
      <Heading name={common.pages.playground}>
        <button type="button" aria-expanded={code} onClick={() => setCode(!code)}>{t.code}</button>
        <button
          type="button"
          disabled={conversation.turns.length === 0 && !conversation.running}
          onClick={newConversation}
        >
          {t.newConversation}
        </button>
      </Heading>
      {accepted?.length === 0 && (
        <p class="notice warn">
          {t.noKeys} <a href={linkTo("keys")}>{common.pages.keys}</a>
        </p>
      )}
      <div class="playground">
        <form class="card" id="playground-form" onSubmit={send}>
          <Select
            label={t.style}
            value={form.style}
            options={styles.map((style) => [style, requests.styles(style)] as const)}
            onValue={(style) => setForm({ style })}
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
          <TextArea
            label={t.system}
            rows={3}
            value={form.system}
            onInput={(event) => setForm({ system: event.currentTarget.value })}
          />
          <div class="stack tight">
            <Check
              label={t.stream}
              checked={form.stream}
              onChange={(event) => setForm({ stream: event.currentTarget.checked })}
            />
            <Check
              label={t.tools}
              aria-describedby="playground-tools"
              checked={form.tools}
              onChange={(event) => setForm({ tools: event.currentTarget.checked })}
            />
            <p class="hint" id="playground-tools">{t.toolsHint}</p>
          </div>
        </form>
        <div class="card talk">
          <ConversationLog conversation={conversation} />
          <TextArea
            label={t.message}
            form="playground-form"
            rows={3}
            value={form.message}
            placeholder={t.placeholder}
            onInput={(event) => setForm({ message: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && ready) send(event)
            }}
          />
          <div class="actions">
            <button type="submit" form="playground-form" class="primary" disabled={!ready}>{t.send}</button>
            {conversation.running && <button type="button" onClick={stopReply}>{t.stop}</button>}
            <span class="hint">{t.sendHint}</span>
          </div>
        </div>
      </div>
      {code && <Code prompt={promptOf(form, conversation.turns)} />}
      {conversation.reasoning !== "" && <Reasoning text={conversation.reasoning} />}
      {conversation.rounds.length > 0 && <RawFrames rounds={conversation.rounds} />}
    </>
  )
}
