/** The requests of the `openai` contract: chat completions and embeddings. */
import {
  carried,
  type Family,
  hint,
  listOf,
  local,
  modelled,
  object,
  objectBy,
  oneOf,
  opaque,
  refusedByDecoder,
  told
} from "./Family.ts"

const isTextOnly = (value: unknown): boolean => Array.isArray(value) && value.every((kind) => kind === "text")

/** Marks of the vendor's cache, which servers in front of other vendors have too. */
export const cacheMarks = {
  prompt_cache_breakpoint: hint("Marks what the vendor caches."),
  cache_control: hint("Marks what the vendor caches.")
}

const textPart = object({ type: modelled, text: modelled, ...cacheMarks })

const imageUrl = object({ url: modelled, detail: modelled })

const imagePart = object({
  type: modelled,
  image_url: imageUrl,
  detail: modelled,
  file_id: modelled,
  ...cacheMarks
})

const filePart = object({
  type: modelled,
  file: object({ file_data: modelled, file_id: modelled, filename: modelled }),
  file_data: modelled,
  file_id: modelled,
  file_url: modelled,
  filename: modelled,
  detail: told("The server decides how it reads files."),
  ...cacheMarks
})

/** The parts of a message's content. Chat completions and Responses accept those of both. */
export const contentKinds = {
  text: textPart,
  input_text: textPart,
  output_text: object({
    type: modelled,
    text: modelled,
    annotations: hint("Repeats what a reply said of its sources."),
    logprobs: hint("Repeats what a reply said of its tokens."),
    ...cacheMarks
  }),
  summary_text: textPart,
  refusal: object({ type: modelled, refusal: modelled, ...cacheMarks }),
  image_url: imagePart,
  input_image: imagePart,
  computer_screenshot: imagePart,
  file: filePart,
  input_file: filePart,
  input_audio: object({ type: modelled, input_audio: object({ data: modelled, format: modelled }), ...cacheMarks }),
  audio_url: object({ type: modelled, audio_url: object({ url: modelled }), ...cacheMarks }),
  video_url: object({ type: modelled, video_url: object({ url: modelled }), ...cacheMarks })
}

const content = listOf(objectBy("type", contentKinds))

const functionCall = object({
  id: modelled,
  type: modelled,
  function: object({ name: modelled, arguments: opaque }),
  extra_content: opaque,
  index: local(hint("Numbers the calls of a streamed reply."))
})

const message = { role: modelled, content, name: modelled, ...cacheMarks }

/** The messages of chat completions, which Responses accept too. */
export const chatMessages = listOf(objectBy("role", {
  system: object(message),
  developer: object(message),
  user: object(message),
  assistant: object({
    ...message,
    reasoning_content: modelled,
    reasoning: opaque,
    reasoning_details: opaque,
    refusal: modelled,
    tool_calls: listOf(objectBy("type", {
      "": functionCall,
      function: functionCall,
      custom: refusedByDecoder("Tools are functions in this style.")
    })),
    function_call: opaque,
    audio: told("The server keeps no audio of earlier replies."),
    annotations: hint("Repeats what a reply said of its sources.")
  }),
  tool: object({ ...message, tool_call_id: modelled }),
  function: object({ ...message, tool_call_id: modelled })
}))

const functionsOnly = refusedByDecoder("Tools are functions in this style.")

export const chatFamily: Family = {
  name: "openai chat",
  vendor: "openai",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    messages: chatMessages,
    stream: modelled,
    stream_options: object({
      include_usage: modelled,
      include_obfuscation: local(hint("The gateway pads no events."))
    }),
    tools: listOf(objectBy("type", {
      function: object({
        type: modelled,
        function: object({ name: modelled, description: modelled, parameters: opaque, strict: modelled }),
        ...cacheMarks
      }),
      custom: functionsOnly
    })),
    tool_choice: objectBy("type", {
      function: object({ type: modelled, function: object({ name: modelled }) }),
      custom: functionsOnly,
      allowed_tools: refusedByDecoder("Declare the allowed tools only.")
    }),
    parallel_tool_calls: modelled,
    n: refusedByDecoder("A reply has one choice."),
    stop: modelled,
    response_format: objectBy("type", {
      text: object({ type: modelled }),
      json_object: object({ type: modelled }),
      json_schema: object({
        type: modelled,
        json_schema: object({ name: modelled, description: modelled, schema: opaque, strict: modelled })
      })
    }),
    temperature: modelled,
    top_p: modelled,
    top_k: modelled,
    max_tokens: modelled,
    max_completion_tokens: modelled,
    seed: modelled,
    presence_penalty: modelled,
    frequency_penalty: modelled,
    logit_bias: opaque,
    reasoning_effort: modelled,
    logprobs: carried({ isSilent: oneOf(false) }),
    top_logprobs: carried(),
    service_tier: carried(),
    verbosity: carried(),
    prediction: carried(),
    modalities: carried({ required: true, isSilent: isTextOnly }),
    audio: carried(),
    web_search_options: carried(),
    moderation: carried(),
    user: carried(),
    metadata: carried(),
    store: carried(),
    safety_identifier: carried(),
    prompt_cache_key: carried(),
    prompt_cache_options: carried(),
    prompt_cache_retention: carried(),
    functions: local(told("The format before tools: declare tools instead.")),
    function_call: local(told("The format before tools: use tool_choice instead.", "auto", "none"))
  }))
}

export const embeddingsFamily: Family = {
  name: "openai embeddings",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    input: modelled,
    dimensions: modelled,
    encoding_format: modelled,
    user: carried()
  }))
}
