#!/bin/bash
echo right > /app/answer
