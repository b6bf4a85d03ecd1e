"""Conformance tables: what is called, with which inputs. The runners in oracle/ and fuzz/ read them.

case.py is the record and its vocabulary, run.py runs it on a library, tolerance.py says how close is close, tables.py
finds the tables; each other file is one area's table, `CASES`.
"""
