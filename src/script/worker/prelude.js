// What a script finds: `mcp`, `tools`, `console` and `input`. Called with the functions of the
// worker, and returns the functions that the worker calls. It keeps the functions that it needs,
// since a script may replace them, and writes messages as text, since a script may add `toJSON` to
// all objects.
((post, end, limits, inputText) => {
  'use strict';
  const { parse, stringify } = JSON;
  const { create, freeze, defineProperty } = Object;
  const { apply } = Reflect;
  const callOn = (method) => (self, ...rest) => apply(method, self, rest);
  const [push, shift] = [callOn(Array.prototype.push), callOn(Array.prototype.shift)];
  const [mapGet, mapSet, mapDelete] =
    [callOn(Map.prototype.get), callOn(Map.prototype.set), callOn(Map.prototype.delete)];
  const match = callOn(RegExp.prototype.exec);
  const [P, E, T, M, S, N] = [Promise, Error, TypeError, Map, String, Number];

  class ToolError extends Error {}
  defineProperty(ToolError.prototype, 'name', { value: 'ToolError' });

  // The requests that wait for their answers, by id, and those that are not sent yet.
  const open = new M();
  const unsent = [];
  let count = 0;
  let sent = 0;

  const send = () => {
    while (sent < limits.atOnce && unsent.length > 0) {
      sent += 1;
      post(shift(unsent), true);
    }
  };

  // Returns the promise of the answer to a request, which is JSON. Its error has the place of the
  // request.
  const ask = (request, name) => new P((resolve, reject) => {
    count += 1;
    const id = count;
    mapSet(open, id, { resolve, reject, name, error: new ToolError() });
    push(unsent, `{"request":{"id":${id},"request":${request}}}`);
    send();
  });

  const receive = (id, isRefusal, text) => {
    const { resolve, reject, name, error } = mapGet(open, id);
    mapDelete(open, id);
    sent -= 1;
    send();
    const refuse = (message) => reject(filled(error, name, message));
    if (isRefusal) return refuse(text);
    let value;
    try {
      value = parse(text);
    } catch {
      return refuse('its answer does not fit into the memory of the script');
    }
    return resolve(value);
  };

  const filled = (error, name, message) => {
    defineProperty(error, 'message', { value: `${name}: ${message}`, configurable: true, writable: true });
    defineProperty(error, 'tool', { value: name, enumerable: true });
    return error;
  };

  const argumentsOf = (name, given) => {
    const text = given.length === 0 ? '{}' : stringify(given[0]);
    if (given.length > 1 || text === undefined || text[0] !== '{') {
      throw new T(`${name} takes one object with named arguments, such as ${name}({ name: value })`);
    }
    if (text.length > limits.arguments) {
      throw new T(`the arguments of ${name} have more than ${limits.arguments} characters`);
    }
    return text;
  };

  // `mcp.server.tool`: any name leads to a function, and the server's tools decide at the call.
  const named = (make) => {
    const known = create(null);
    return new Proxy(freeze(create(null)), {
      get: (_, key) => {
        // Whatever has `then` would be taken for a promise. The others are called by the language.
        if (typeof key === 'symbol' || key === 'then' || key === 'toJSON' || key === 'toString'
          || key === 'valueOf') return undefined;
        return (known[key] ??= make(key));
      },
      set: () => false,
    });
  };
  const mcp = named((server) => named((tool) => (...given) => {
    const text = argumentsOf(`mcp.${server}.${tool}`, given);
    const call = `"server":${stringify(server)},"tool":${stringify(tool)},"arguments":${text}`;
    return ask(`{"call":{${call}}}`, `${server}/${tool}`);
  }));

  const tools = freeze({
    call: (named, ...given) => {
      const [name, text] = [S(named), argumentsOf('tools.call', given)];
      return ask(`{"callNamed":{"name":${stringify(name)},"arguments":${text}}}`, name);
    },
    search: (query) => ask(`{"search":{"query":${stringify(S(query))}}}`, 'tools.search'),
    describe: (name) => ask(`{"describe":{"name":${stringify(S(name))}}}`, 'tools.describe'),
  });

  let logged = 0;
  const shown = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof E) return value.stack ? `${value}\n${value.stack}` : `${value}`;
    try {
      return stringify(value) ?? S(value);
    } catch {
      return S(value);
    }
  };
  const log = (...values) => {
    if (logged > limits.output) return;
    let text = '';
    for (let at = 0; at < values.length; at += 1) text += (at > 0 ? ' ' : '') + shown(values[at]);
    logged += text.length + 1;
    const kept = logged > limits.output ? '[more is not kept]' : text;
    post(`{"log":{"text":${stringify(kept)}}}`, false);
  };
  const console = freeze({ log, info: log, warn: log, error: log, debug: log });

  let given;
  try {
    given = parse(inputText);
  } catch {
    const message = 'the input does not fit into the memory of the script, or is too deep';
    end(`{"failed":{"message":"${message}","place":null}}`);
  }
  const global = { mcp, tools, console, input: given };
  for (const key of ['mcp', 'tools', 'console', 'input']) {
    defineProperty(globalThis, key, { value: global[key], writable: key === 'input' });
  }

  // A script may throw anything, with any text and any stack.
  const fail = (thrown, firstColumn) => {
    let message = 'the script has thrown a value without a text';
    let place = 'null';
    try {
      message = thrown instanceof E ? S(thrown) : `the script has thrown ${shown(thrown)}`;
      const found = match(/script:(\d+):(\d+)/, S(thrown?.stack));
      const line = found === null ? 0 : N(found[1]);
      if (line > 0 && line < limits.lines) {
        const from = N(found[2]) - (line === 1 ? firstColumn : 0);
        const column = from < limits.lines ? from : 1;
        place = `{"line":${line},"column":${column > 0 ? column : 1}}`;
      }
    } catch {}
    end(`{"failed":{"message":${stringify(message)},"place":${place}}}`);
  };

  const finish = (value) => {
    const text = stringify(value);
    if (text !== undefined && text.length > limits.output) {
      const size = `${text.length} characters, more than the ${limits.output} that it may return`;
      throw new T(`the value of the script has ${size}: return less`);
    }
    if (unsent.length > 0) {
      log(`[${unsent.length} calls had not been made when the script ended: await each call]`);
    }
    end(text === undefined ? '{"done":{"value":null}}' : `{"done":{"value":${text}}}`);
  };

  // Waits for the end of the evaluated script. The value of its last statement may be a promise, or
  // a function, which is called.
  const conclude = async (evaluated, firstColumn) => {
    try {
      let value = await (await evaluated).value;
      if (typeof value === 'function') value = await value(global.input);
      finish(value);
    } catch (thrown) {
      fail(thrown, firstColumn);
    }
  };

  return { receive, conclude, fail };
})
