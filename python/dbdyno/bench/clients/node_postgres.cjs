// The client node-postgres: reads the job, runs its slices, writes the records (docs/reference/client-protocol.md).
//
// `prepared`: statements with a name, which the server keeps; `binds`: values apart from the text; `literals`: values in
// the text. With a fetch size a query is read through pg-cursor, in a transaction of its own where the script has none.
// Values go out as text of unknown type, as node-postgres does it; rows come back as objects.
'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const { Client } = require('pg');
const Cursor = require('pg-cursor');
const about = `node-postgres ${require('pg/package.json').version}, Node ${process.versions.node}`;

const [HELLO, READY, CLOSED, TRANSACTION, STATEMENT, END, SAID, FAILED] = [1, 2, 3, 4, 5, 6, 7, 8];
const LENGTH = 48;
const FLUSH_NS = 1_000_000_000n;
const now = () => process.hrtime.bigint();
console.log = console.error; // stdout is for the stream alone

let job = null;
let sessions = [];
let lost = 0;
let due = null; // times of an open loop, which the sessions share
const saidAlready = new Set(); // an error's words once for each statement

function write(buffer) {
  for (let at = 0; at < buffer.length; ) {
    try {
      at += fs.writeSync(1, buffer, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

function record(kind, { session = 0, slice = 0, statement = 0, started = 0n, elapsed = 0n, rows = -1, code = '', text = '' }) {
  const said = Buffer.from(text).subarray(0, 60000);
  const out = Buffer.alloc(LENGTH + Math.ceil(said.length / LENGTH) * LENGTH);
  out.writeUInt8(kind, 0);
  out.writeUInt8(0xdb, 1);
  out.writeUInt16LE(session, 2);
  out.writeUInt32LE(slice, 4);
  out.writeUInt32LE(statement, 8);
  out.writeUInt32LE(said.length, 12);
  out.writeBigInt64LE(started, 16);
  out.writeBigInt64LE(elapsed, 24);
  out.writeBigInt64LE(BigInt(rows), 32);
  out.write(code.slice(0, 5), 40, 'latin1');
  said.copy(out, LENGTH);
  return out;
}

// The server's message, and behind zero bytes the fields that say whose it is and which names stand in it.
function said(error) {
  const fields = { R: 'routine', s: 'schema', t: 'table', c: 'column', d: 'dataType', n: 'constraint' };
  const known = Object.entries(fields).filter(([, name]) => error[name]);
  return [String(error.message), ...known.map(([letter, name]) => letter + error[name])].join('\0');
}

function literal(value) {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}

class Session {
  constructor(number) {
    this.number = number;
    this.drawn = [];
    this.at = 0;
    this.open = false;
  }

  async connect() {
    this.client = new Client(); // by libpq's variables
    this.broken = false;
    this.client.on('error', () => (this.broken = true));
    this.client.on('end', () => (this.broken = true));
    await this.client.connect();
    for (const sql of job.before) await this.client.query(sql);
  }

  async run(number, values) {
    const statement = job.statements[number];
    let query = { text: statement.text, values };
    if (job.mode === 'prepared') query.name = `dbdyno${number}`;
    if (job.mode === 'literals') {
      query = { text: statement.pieces.reduce((text, piece, at) => text + literal(values[at - 1]) + piece), values: undefined };
    }
    if (job.fetchSize && statement.query) return this.fetched(query);
    // Without a list of values node-postgres sends a text by the simple protocol.
    if (job.mode === 'binds') query.queryMode = 'extended';
    const result = await this.client.query(query);
    return result.fields.length ? result.rows.length : result.rowCount || 0;
  }

  async fetched(query) {
    const own = !this.inside;
    if (own) await this.client.query('begin');
    const cursor = this.client.query(new Cursor(query.text, query.values));
    let count = 0;
    for (;;) {
      const rows = await cursor.read(job.fetchSize);
      count += rows.length;
      if (rows.length < job.fetchSize) break;
    }
    await cursor.close();
    if (own) await this.client.query('commit');
    return count;
  }

  async transaction(slice, [script, steps], began, out) {
    const single = job.single[script];
    let at = began;
    let got = -1;
    let code = '';
    for (const [statement, ...values] of steps) {
      if (statement === null) {
        await new Promise((done) => setTimeout(done, values[0] / 1000));
        at = now();
        continue;
      }
      const begun = at;
      try {
        got = await this.run(statement, values);
        at = now();
        const kind = job.statements[statement].kind;
        if (kind !== 'exec') this.inside = kind === 'begin';
      } catch (error) {
        at = now();
        got = -1;
        code = /^[0-9A-Z]{5}$/.test(error.code || '') ? error.code : this.broken ? '08006' : 'XX000';
        if (!saidAlready.has(statement + code)) {
          saidAlready.add(statement + code);
          write(record(SAID, { session: this.number, slice, statement, started: at, code, text: said(error) }));
        }
      }
      if (!single) out.push(record(STATEMENT, { session: this.number, slice, statement, started: begun, elapsed: at - begun, rows: got, code }));
      if (code) break;
    }
    const rows = single ? got : -1;
    out.push(record(TRANSACTION, { session: this.number, slice, statement: script, started: began, elapsed: at - began, rows, code }));
    if (code) {
      await this.recover();
      at = now();
    }
    return at;
  }

  async recover() {
    this.inside = false;
    if (!this.broken) {
      await this.client.query('rollback');
      return;
    }
    for (const deadline = now() + 10n * FLUSH_NS; ; ) {
      try {
        await this.connect();
        lost += 1;
        return;
      } catch (error) {
        if (now() > deadline) throw error;
        await new Promise((done) => setTimeout(done, 100));
      }
    }
  }

  async turn(slice, until, most) {
    let out = [];
    let count = 0;
    let at = now();
    let flushed = at;
    while ((at = await begins(at, until, most, count)) !== null) {
      const one = this.drawn[this.at];
      this.at = (this.at + 1) % this.drawn.length;
      count += 1;
      at = await this.transaction(slice, one, at, out);
      if (at - flushed > FLUSH_NS) {
        write(Buffer.concat(out));
        out = [];
        at = flushed = now();
      }
    }
    write(Buffer.concat(out));
    return count;
  }
}

// When the next transaction begins: at once in a closed loop, when it is due in an open one; null at the end. Timers are
// good for milliseconds, so the last of them is waited for turn by turn of the event loop.
async function begins(at, until, most, count) {
  if (due === null) return (until === null ? count < most : at < until) ? at : null;
  if (due.times.length === due.next || now() >= due.giveUp) return null;
  const own = due.times[due.next++];
  for (let left = own - now(); left > 0n; left = own - now()) {
    if (left > 2_000_000n) await new Promise((done) => setTimeout(done, Number(left / 1_000_000n) - 1));
    else await new Promise((done) => setImmediate(done));
  }
  return now();
}

async function answer(message) {
  const began = now();
  if (message.do === 'job') {
    const timeout = message.statement_timeout_ms;
    job = {
      mode: message.mode,
      fetchSize: message.fetch_size,
      single: message.scripts.map((script) => script.single),
      before: [...message.session_sql, ...(timeout ? [`set statement_timeout = ${timeout}`] : [])],
      statements: message.statements.map((own) => ({
        ...own,
        text: own.pieces.reduce((text, piece, at) => `${text}$${at}${piece}`),
      })),
    };
    sessions = Array.from({ length: message.sessions }, (_, number) => new Session(number));
    for (const session of sessions) await session.connect();
    write(record(READY, { started: began, elapsed: now() - began }));
  } else if (message.do === 'draw') {
    message.transactions.forEach((drawn, number) => Object.assign(sessions[number], { drawn, at: 0 }));
  } else if (message.do === 'slice') {
    due = message.due_ns ? { times: message.due_ns.map(BigInt), next: 0, giveUp: BigInt(message.give_up_ns) } : null;
    const [slice, count] = [message.slice, message.transactions];
    const until = count === null ? began + BigInt(message.length_ns) : null;
    const share = (number) => Math.floor(count / sessions.length) + (number < count % sessions.length ? 1 : 0);
    const done = await Promise.all(sessions.map((session) => session.turn(slice, until, share(session.number))));
    const rows = done.reduce((sum, one) => sum + one, 0);
    write(record(END, { slice, statement: lost, started: began, elapsed: now() - began, rows }));
    lost = 0;
  } else if (message.do === 'close') {
    await close();
    write(record(CLOSED, { started: began, elapsed: now() - began }));
  }
}

async function close() {
  for (const session of sessions) await session.client.end();
  sessions = [];
}

async function main() {
  write(record(HELLO, { statement: 1, started: now(), text: about }));
  try {
    for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) await answer(JSON.parse(line));
    await close();
    process.exit(0);
  } catch (error) {
    const code = /^[0-9A-Z]{5}$/.test(error.code || '') ? error.code : '';
    write(record(FAILED, { started: now(), code, text: String(error.message) }));
    process.exit(1);
  }
}

main();
